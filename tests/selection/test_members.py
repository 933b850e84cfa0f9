"""The members of a consensus: how long the rest will take."""

from polyspan import GRMSC, MeanGraph
from polyspan.selection.pool import member_of, new_row, seconds_left


def row(model, seconds, status="ok"):
    return new_row(member_of(model)) | {"status": status, "seconds": seconds}


def test_the_time_left_is_that_of_like_members():
    table = [row(MeanGraph(), 0.1), row(MeanGraph(), 0.3), row(GRMSC(), 9.0)]
    table.append(row(GRMSC(), 1000.0, "failed"))
    assert seconds_left(table, [MeanGraph()]) == 0.2
    assert seconds_left(table, [GRMSC(lam1=5.0), GRMSC(), MeanGraph()]) == 18.2
    assert seconds_left(table[:2], [GRMSC(), GRMSC()]) == 0.4  # nothing better is known
    assert seconds_left([row(GRMSC(), 3.0, "failed")], [GRMSC()]) is None
