# lrqr in a container, as an ordinary user:
#   docker build -t lrqr .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" lrqr fit source.csv target.csv -o model
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY configs configs
COPY data/airfoil.csv data/
COPY lrqr lrqr
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN python -m pip install --no-cache-dir /wheels/*.whl && rm -r /wheels \
    && useradd --create-home lrqr
# matplotlib keeps a cache; any user may run this image
ENV MPLCONFIGDIR=/tmp/matplotlib OPENBLAS_NUM_THREADS=1
USER lrqr
WORKDIR /data
ENTRYPOINT ["lrqr"]
CMD ["--help"]
