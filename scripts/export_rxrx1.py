"""Export RxRx1 (WILDS) to the file that ``configs/rxrx1.toml`` reads: ``rxrx1.npz``.

RxRx1 may not be shipped (CC BY-NC-SA 4.0; 7 GB of images), so this script runs where the images and a trained
network are. It needs ``pip install wilds torch torchvision`` (none of them a dependency of lrqr) and a
checkpoint of the WILDS baseline: an ERM ResNet-50 with 1139 classes, of which the WILDS leaderboard links one
per seed (named like ``rxrx1_seed:0_epoch:best_model.pth``). ``--download`` lets WILDS fetch the images::

    python scripts/export_rxrx1.py --root DATA --download --checkpoint MODEL.pth --output data/rxrx1.npz
    lrqr reproduce rxrx1 -o RUN

The output holds the images of the 14 test experiments: ``features`` (n, 2048) float32, the pooled last layer;
``logits`` (n, 1139) float32; ``outcome`` (n,) the treatment; ``group`` (n,) the experiment.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = 1139


def main() -> None:
    """Parse the arguments, run the network over the test split and write the file."""
    arguments = parse(sys.argv[1:])
    if arguments.output.exists() and not arguments.force:
        sys.exit(f"{arguments.output} exists; pass --force to replace it")
    try:
        import torch
        from wilds import get_dataset
    except ImportError as error:
        sys.exit(f"{error}; this script needs: pip install wilds torch torchvision")
    dataset = get_dataset(dataset="rxrx1", root_dir=str(arguments.root), download=arguments.download)
    subset = dataset.get_subset(arguments.split, transform=standardized)
    loader = torch.utils.data.DataLoader(
        subset, batch_size=arguments.batch_size, num_workers=arguments.workers
    )
    network = load_network(arguments.checkpoint)
    experiment = dataset.metadata_fields.index("experiment")
    arrays = run(network, loader, experiment, arguments.device)
    np.savez_compressed(arguments.output, **arrays)
    groups = len(np.unique(arrays["group"]))
    accuracy = (arrays["logits"].argmax(axis=1) == arrays["outcome"]).mean()
    print(
        f"{arguments.output}: {len(arrays['outcome'])} images, {groups} experiments, accuracy {accuracy:.3f}"
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, required=True, help="folder of the WILDS data")
    parser.add_argument(
        "--checkpoint", type=Path, required=True, help="trained ResNet-50 of the WILDS baseline"
    )
    parser.add_argument("--output", type=Path, default=Path("data/rxrx1.npz"))
    parser.add_argument(
        "--split", default="test", help="WILDS split; test has the 14 experiments of the paper"
    )
    parser.add_argument("--download", action="store_true", help="let WILDS fetch the images")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--force", action="store_true", help="replace the output")
    return parser.parse_args(arguments)


def standardized(image: Any) -> Any:
    """Turn an image into a tensor, each channel standardized by itself, as the WILDS baseline does."""
    from torchvision.transforms import functional

    tensor = functional.to_tensor(image)
    mean, spread = tensor.mean(dim=(1, 2)), tensor.std(dim=(1, 2))
    spread[spread == 0.0] = 1.0
    return functional.normalize(tensor, mean.tolist(), spread.tolist())


def load_network(checkpoint: Path) -> Any:
    """Return the ResNet-50 of a WILDS checkpoint; weights only, nothing in the file is executed."""
    import torch
    from torchvision.models import resnet50

    network = resnet50(weights=None, num_classes=CLASSES)
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    network.load_state_dict(bare_names(state.get("algorithm", state)))
    return network.eval()


def bare_names(state: dict[str, Any]) -> dict[str, Any]:
    """Strip the prefixes under which WILDS stores a network: ``model.``, or ``model.0.`` and ``model.1.``."""
    names = {}
    for name, value in state.items():
        bare = name.removeprefix("module.").removeprefix("model.")
        if bare.startswith("0."):  # featurizer
            bare = bare.removeprefix("0.")
        elif bare.startswith("1."):  # classifier
            bare = f"fc.{bare.removeprefix('1.')}"
        names[bare] = value
    return names


def run(network: Any, loader: Any, experiment: int, device: str) -> dict[str, np.ndarray[Any, Any]]:
    """Run the network over all batches; keep what enters and what leaves its last layer."""
    import torch

    kept: dict[str, list[Any]] = {"features": [], "logits": [], "outcome": [], "group": []}
    network.to(device)
    network.fc.register_forward_pre_hook(lambda _, inputs: kept["features"].append(inputs[0].cpu().numpy()))
    with torch.no_grad():
        for images, outcome, metadata in loader:
            kept["logits"].append(network(images.to(device)).cpu().numpy())
            kept["outcome"].append(outcome.numpy())
            kept["group"].append(metadata[:, experiment].numpy())
    return {name: np.concatenate(parts) for name, parts in kept.items()}


if __name__ == "__main__":
    main()
