"""Export MMLU with all subjects to the file that ``configs/mmlu-all.toml`` reads: ``mmlu_all.npz``.

Section 5.4 of arXiv:2502.13030 uses option probabilities of LLaMA-13B and embeddings of GPT-2. The weights
may not be shipped, so the script runs where they are. It needs ``pip install torch transformers datasets``
(none of them a dependency of lrqr)::

    python scripts/export_mmlu.py --model FOLDER_OF_LLAMA_13B --output data/mmlu_all.npz
    lrqr reproduce mmlu-all -o RUN

The output holds the test questions: ``embedding`` (n, 768) float32, the mean of GPT-2's last hidden states;
``probability`` (n, 4) float32 of A to D as the next token, normalized; ``answer`` (n,) 0 to 3;
``subject`` (n,). The paper gives neither its prompt nor its pooling: both are our choice.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LETTERS = "ABCD"


def main() -> None:
    """Parse the arguments, ask both models about every question and write the file."""
    arguments = parse(sys.argv[1:])
    if arguments.output.exists() and not arguments.force:
        sys.exit(f"{arguments.output} exists; pass --force to replace it")
    try:
        import datasets
    except ImportError as error:
        sys.exit(f"{error}; this script needs: pip install torch transformers datasets")
    questions = datasets.load_dataset(arguments.dataset, "all", split="test")
    answerer, embedder = (
        asker(arguments.model, arguments.device),
        pooler(arguments.embedder, arguments.device),
    )
    arrays = export(questions, answerer, embedder)
    np.savez_compressed(arguments.output, **arrays)
    accuracy = (arrays["probability"].argmax(axis=1) == arrays["answer"]).mean()
    subjects = len(set(arrays["subject"]))
    print(
        f"{arguments.output}: {len(arrays['answer'])} questions, {subjects} subjects, accuracy {accuracy:.3f}"
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", required=True, help="folder or name of the model that answers: LLaMA-13B")
    parser.add_argument("--embedder", default="gpt2", help="folder or name of the model that embeds")
    parser.add_argument("--dataset", default="cais/mmlu", help="data set with the columns of cais/mmlu")
    parser.add_argument("--output", type=Path, default=Path("data/mmlu_all.npz"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--force", action="store_true", help="replace the output")
    return parser.parse_args(arguments)


def export(
    questions: Iterable[dict[str, Any]],
    answerer: Callable[[str], Any],
    embedder: Callable[[str], Any],
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of the file.

    Parameters
    ----------
    questions : iterable of dict
        With ``question``, ``choices`` (four), ``answer`` (0 to 3) and ``subject``.
    answerer : callable
        From a prompt to the logits of the next token being A, B, C, D.
    embedder : callable
        From a question to its embedding.
    """
    kept: dict[str, list[Any]] = {"embedding": [], "probability": [], "answer": [], "subject": []}
    for entry in questions:
        logits = np.asarray(answerer(prompt(entry)), dtype=np.float64)
        odds = np.exp(logits - logits.max())
        kept["probability"].append(np.float32(odds / odds.sum()))
        kept["embedding"].append(np.asarray(embedder(entry["question"]), dtype=np.float32))
        kept["answer"].append(int(entry["answer"]))
        kept["subject"].append(str(entry["subject"]))
    return {name: np.array(values) for name, values in kept.items()}


def prompt(entry: dict[str, Any]) -> str:
    """Return a question as it is put to the model, without examples."""
    subject = entry["subject"].replace("_", " ")
    options = "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, entry["choices"], strict=True))
    head = f"The following is a multiple choice question about {subject}."
    return f"{head}\n\n{entry['question'].strip()}\n{options}\nAnswer:"


def asker(name: str, device: str) -> Callable[[str], Any]:
    """Return a function from a prompt to the logits of A to D as the next token."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name, torch_dtype="auto").to(device).eval()
    tokens = [tokenizer.encode(f" {letter}", add_special_tokens=False)[-1] for letter in LETTERS]

    def ask(text: str) -> Any:
        with torch.no_grad():
            logits = model(**tokenizer(text, return_tensors="pt").to(device)).logits[0, -1]
        return logits[tokens].float().cpu().numpy()

    return ask


def pooler(name: str, device: str) -> Callable[[str], Any]:
    """Return a function from a text to the mean of the last hidden states."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModel.from_pretrained(name).to(device).eval()

    def pool(text: str) -> Any:
        with torch.no_grad():
            encoded = tokenizer(text, return_tensors="pt", truncation=True).to(device)
            return model(**encoded).last_hidden_state[0].mean(dim=0).float().cpu().numpy()

    return pool


if __name__ == "__main__":
    main()
