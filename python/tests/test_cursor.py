"""What iter, set_epoch, load_state_dict and errors do to the cursor."""

from __future__ import annotations

import pytest

from feedwater._order.cursor import KEPT, At, Cursor


def take(cursor: Cursor, samples: int = 10) -> None:
    """Returns a batch, as the Loader does."""
    cursor.prepare()
    epoch, consumed = cursor.at.place
    cursor.at = At((epoch, consumed + samples), True, None, None)


def test_after_a_pass_that_returned_a_batch_comes_the_next_epoch() -> None:
    cursor = Cursor()
    cursor.begin()
    take(cursor)
    cursor.begin()
    assert cursor.at.place == (1, 0)


def test_iter_just_to_look_moves_nothing() -> None:
    cursor = Cursor()
    for _ in range(3):
        cursor.begin()
    assert cursor.at.place == (0, 0)


def test_set_epoch_begins_that_epoch() -> None:
    cursor = Cursor()
    cursor.begin()
    take(cursor)
    cursor.set_epoch(7)
    assert cursor.at.place == (0, 10), "the running pass goes on"
    cursor.begin()
    assert cursor.at.place == (7, 0)


def test_set_epoch_amid_a_pass_is_for_the_next_one() -> None:
    cursor = Cursor()
    cursor.begin()
    take(cursor)
    cursor.set_epoch(7)
    assert cursor.place == (7, 0), "as if the pass were broken off"
    assert cursor.pending
    take(cursor)
    assert cursor.place == (0, 20), "it goes on"
    assert not cursor.pending
    assert cursor.following == (7, 0)
    cursor.finish()
    assert cursor.place == cursor.following == (7, 0)
    cursor.begin()
    take(cursor)
    assert cursor.following == (8, 0)
    cursor.finish()
    cursor.begin()
    assert cursor.at.place == (8, 0), "a wish is fulfilled once"


def test_set_epoch_of_the_running_epoch_begins_it_again() -> None:
    cursor = Cursor()
    cursor.begin()
    take(cursor)
    cursor.set_epoch(0)
    cursor.begin()
    assert cursor.at.place == (0, 0)


@pytest.mark.parametrize("begin_first", [False, True])
def test_set_epoch_of_the_loaded_epoch_keeps_the_cursor(begin_first: bool) -> None:
    cursor = Cursor()
    cursor.load(3, 40)
    if begin_first:
        cursor.begin()
    cursor.set_epoch(3)
    cursor.begin()
    assert cursor.at.place == (3, 40)
    take(cursor)
    cursor.set_epoch(3)
    cursor.begin()
    assert cursor.at.place == (3, 0), "only just after loading"


def test_set_epoch_of_another_epoch_after_loading_begins_that() -> None:
    cursor = Cursor()
    cursor.load(3, 40)
    cursor.set_epoch(4)
    cursor.begin()
    assert cursor.at.place == (4, 0)


def test_epochs_after_a_resumed_one_are_whole() -> None:
    cursor = Cursor()
    cursor.load(3, 40)
    cursor.begin()
    take(cursor)
    cursor.finish()
    assert cursor.place == (4, 0)
    cursor.begin()
    assert cursor.at.place == (4, 0)


def test_a_state_loaded_amid_a_pass_is_taken_up_by_its_next_batch() -> None:
    cursor = Cursor()
    cursor.begin()
    take(cursor)
    cursor.load(0, 50)
    assert cursor.moved
    cursor.begin()
    assert cursor.at.place == (0, 50)
    assert not cursor.moved


def test_after_our_error_iter_goes_on_at_the_cursor() -> None:
    cursor = Cursor()
    cursor.begin()
    take(cursor)
    cursor.fail()
    cursor.begin()
    assert cursor.at.place == (0, 10)
    take(cursor)
    cursor.begin()
    assert cursor.at.place == (1, 0)


def test_an_error_that_was_got_over_holds_no_later_pass() -> None:
    cursor = Cursor()
    cursor.begin()
    take(cursor)
    cursor.fail()
    take(cursor)
    assert not cursor.failed
    cursor.begin()
    assert cursor.at.place == (1, 0)


def test_a_pass_that_was_broken_off_is_remembered_until_one_runs_through() -> None:
    cursor = Cursor()
    cursor.begin()
    take(cursor)
    take(cursor)
    cursor.begin()
    assert cursor.habit == 20
    take(cursor)
    cursor.finish()
    assert cursor.habit is None


def test_lag_counts_returned_batches_back_over_the_epochs_end() -> None:
    cursor = Cursor()
    cursor.begin()
    for _ in range(3):
        take(cursor)
    cursor.finish()
    cursor.begin()
    take(cursor)
    assert [cursor.back(lag) for lag in range(5)] == [(1, 10), (1, 0), (0, 20), (0, 10), (0, 0)]
    with pytest.raises(ValueError, match="last 4 batches"):
        cursor.back(5)
    with pytest.raises(ValueError, match="lag=-1"):
        cursor.back(-1)


def test_a_batch_that_is_prepared_and_not_returned_does_not_count() -> None:
    cursor = Cursor()
    cursor.begin()
    take(cursor)
    cursor.prepare()
    cursor.prepare()
    assert cursor.back(1) == (0, 0)


def test_history_is_bounded() -> None:
    cursor = Cursor()
    cursor.begin()
    for _ in range(2 * KEPT):
        take(cursor)
    assert cursor.back(KEPT) == (0, KEPT * 10)
    with pytest.raises(ValueError, match="at most"):
        cursor.back(KEPT + 1)
