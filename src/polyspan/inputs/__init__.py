"""Turn user input into clean, scaled arrays, or raise a one-sentence error saying what is wrong."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyspan.inputs.filling import impute

__all__ = ["impute"]


def __getattr__(name: str) -> Any:
    if name == "impute":  # loaded when first used, because it computes
        from polyspan.inputs.filling import impute

        return impute
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
