"""What iter, set_epoch, load_state_dict and errors do to the cursor."""

from __future__ import annotations

import pytest

from feedwater._order.cursor import KEPT, Cursor, Position


def take(cursor: Cursor, samples: int = 10) -> None:
    """Returns a batch, as the Loader does."""
    cursor.prepare_batch()
    epoch, consumed = cursor.at.place
    cursor.at = Position((epoch, consumed + samples), True, None, None)


def test_after_a_pass_that_returned_a_batch_comes_the_next_epoch() -> None:
    cursor = Cursor()
    cursor.begin_pass()
    take(cursor)
    cursor.begin_pass()
    assert cursor.at.place == (1, 0)


def test_iter_just_to_look_moves_nothing() -> None:
    cursor = Cursor()
    for _ in range(3):
        cursor.begin_pass()
    assert cursor.at.place == (0, 0)


def test_set_epoch_begins_that_epoch() -> None:
    cursor = Cursor()
    cursor.begin_pass()
    take(cursor)
    cursor.set_epoch(7)
    assert cursor.at.place == (0, 10), "the running pass goes on"
    cursor.begin_pass()
    assert cursor.at.place == (7, 0)


def test_set_epoch_amid_a_pass_is_for_the_next_one() -> None:
    cursor = Cursor()
    cursor.begin_pass()
    take(cursor)
    cursor.set_epoch(7)
    assert cursor.place == (7, 0), "as if the pass were broken off"
    assert cursor.pending
    take(cursor)
    assert cursor.place == (0, 20), "it goes on"
    assert not cursor.pending
    assert cursor.following == (7, 0)
    cursor.finish_pass()
    assert cursor.place == cursor.following == (7, 0)
    cursor.begin_pass()
    take(cursor)
    assert cursor.following == (8, 0)
    cursor.finish_pass()
    cursor.begin_pass()
    assert cursor.at.place == (8, 0), "a wish is fulfilled once"


def test_set_epoch_of_the_running_epoch_begins_it_again() -> None:
    cursor = Cursor()
    cursor.begin_pass()
    take(cursor)
    cursor.set_epoch(0)
    cursor.begin_pass()
    assert cursor.at.place == (0, 0)


@pytest.mark.parametrize("begin_first", [False, True])
def test_set_epoch_of_the_loaded_epoch_keeps_the_cursor(begin_first: bool) -> None:
    cursor = Cursor()
    cursor.load_place(3, 40)
    if begin_first:
        cursor.begin_pass()
    cursor.set_epoch(3)
    cursor.begin_pass()
    assert cursor.at.place == (3, 40)
    take(cursor)
    cursor.set_epoch(3)
    cursor.begin_pass()
    assert cursor.at.place == (3, 0), "only just after loading"


def test_set_epoch_of_another_epoch_after_loading_begins_that() -> None:
    cursor = Cursor()
    cursor.load_place(3, 40)
    cursor.set_epoch(4)
    cursor.begin_pass()
    assert cursor.at.place == (4, 0)


def test_epochs_after_a_resumed_one_are_whole() -> None:
    cursor = Cursor()
    cursor.load_place(3, 40)
    cursor.begin_pass()
    take(cursor)
    cursor.finish_pass()
    assert cursor.place == (4, 0)
    cursor.begin_pass()
    assert cursor.at.place == (4, 0)


def test_a_state_loaded_amid_a_pass_is_taken_up_by_its_next_batch() -> None:
    cursor = Cursor()
    cursor.begin_pass()
    take(cursor)
    cursor.load_place(0, 50)
    assert cursor.moved
    cursor.begin_pass()
    assert cursor.at.place == (0, 50)
    assert not cursor.moved


def test_after_our_error_iter_goes_on_at_the_cursor() -> None:
    cursor = Cursor()
    cursor.begin_pass()
    take(cursor)
    cursor.note_failure()
    cursor.begin_pass()
    assert cursor.at.place == (0, 10)
    take(cursor)
    cursor.begin_pass()
    assert cursor.at.place == (1, 0)


def test_an_error_that_was_got_over_holds_no_later_pass() -> None:
    cursor = Cursor()
    cursor.begin_pass()
    take(cursor)
    cursor.note_failure()
    take(cursor)
    assert not cursor.failed
    cursor.begin_pass()
    assert cursor.at.place == (1, 0)


def test_a_pass_that_was_broken_off_is_remembered_until_one_runs_through() -> None:
    cursor = Cursor()
    cursor.begin_pass()
    take(cursor)
    take(cursor)
    cursor.begin_pass()
    assert cursor.habit == 20
    take(cursor)
    cursor.finish_pass()
    assert cursor.habit is None


def test_lag_counts_returned_batches_back_over_the_epochs_end() -> None:
    cursor = Cursor()
    cursor.begin_pass()
    for _ in range(3):
        take(cursor)
    cursor.finish_pass()
    cursor.begin_pass()
    take(cursor)
    assert [cursor.place_before(lag) for lag in range(5)] == [(1, 10), (1, 0), (0, 20), (0, 10), (0, 0)]
    with pytest.raises(ValueError, match="last 4 batches"):
        cursor.place_before(5)
    with pytest.raises(ValueError, match="lag=-1"):
        cursor.place_before(-1)


def test_a_batch_that_is_prepared_and_not_returned_does_not_count() -> None:
    cursor = Cursor()
    cursor.begin_pass()
    take(cursor)
    cursor.prepare_batch()
    cursor.prepare_batch()
    assert cursor.place_before(1) == (0, 0)


def test_history_is_bounded() -> None:
    cursor = Cursor()
    cursor.begin_pass()
    for _ in range(2 * KEPT):
        take(cursor)
    assert cursor.place_before(KEPT) == (0, KEPT * 10)
    with pytest.raises(ValueError, match="at most"):
        cursor.place_before(KEPT + 1)
