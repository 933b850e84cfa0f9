"""What can be missed where only a part of the samples is looked at, drawn at random."""

from scipy.stats import hypergeom

ENOUGH = 11  # samples of a group, each of which then has ten neighbours in it
CHANCE = 0.01  # that a group has fewer in the part


def sure_size(n: int, drawn: int) -> int:
    """Size from which a group of n samples has 11 or more among those drawn, with chance .99.

    Their number is hypergeometric: the bound is exact for one group, whatever the data are.

    Examples
    --------
    >>> sure_size(10_000, 1_000), sure_size(1_000_000, 4_000), sure_size(500, 500)
    (196, 5025, 11)
    """
    low, high = ENOUGH, n
    while low < high:
        middle = (low + high) // 2
        if hypergeom.cdf(ENOUGH - 1, n, middle, drawn) <= CHANCE:
            high = middle
        else:
            low = middle + 1
    return low


def tell_drawn(n: int, drawn: int) -> str:
    """Say what a part of the samples can miss; nothing if all were looked at.

    Examples
    --------
    >>> tell_drawn(10_000, 1_000)
    '1,000 of 10,000 samples were looked at: a group of fewer than 196 may be missed'
    >>> tell_drawn(900, 1_000)
    ''
    """
    if n <= drawn:
        return ""
    size = sure_size(n, drawn)
    return (
        f"{drawn:,} of {n:,} samples were looked at: a group of fewer than {size:,} may be missed"
    )
