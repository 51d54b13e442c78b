"""The opened plan: what the agent says of it, and whether it is what the arguments and a loaded state say."""

from __future__ import annotations

from .._agent.feed import Feed
from .._agent.plan_info import PlanInfo
from .._batch.batch import check_ragged
from .._common.filenames import to_json
from .._config import Config
from .._state import State
from ..errors import DataError

__all__ = ["Opening"]


class Opening:
    """Opens the plan at its first use."""

    def __init__(self, config: Config, feed: Feed) -> None:
        self._config, self._feed = config, feed
        self._fits = False
        self.state: tuple[State, bool] | None = None
        """A loaded state that was not compared with the opened plan yet, and whether strictly."""

    def open_plan(self) -> PlanInfo:
        """The opened plan; starts the agent if need be."""
        session = self._feed.session
        if not self._fits:
            session.revisions = session.stores = session.numerics = None  # not those of a state that was refused
            if self.state is not None and self.state[1]:
                raw = self.state[0].raw
                session.revisions, session.stores = raw.get("revisions"), raw.get("stores")
                if self._config.nodes or session.revisions is None:
                    session.numerics = raw.get("numerics")
            session.ensure_link()
            assert session.opened is not None
            self._config.source.check_data_set(list(session.opened.classes), session.opened.samples)
            self._check_listing(session.opened)
            made_alike = self._config.python is not None or self._config.batch_transform is not None
            check_ragged(self._config.batch_size or 1, session.opened, expected=made_alike)
            if self._config.targets is not None:
                self._config.targets.check_count(session.opened.samples)
            if self._config.relabel is not None:
                self._config.relabel.open_classes(session.opened.classes, self._config.source.name)
            self._fits = True
        assert session.opened is not None
        return session.opened

    def _check_listing(self, opened: PlanInfo) -> None:
        """Raises DataError if an ImageFolder that was passed has other samples, labels or order than its folder."""
        source, session = self._config.source, self._feed.session
        if source.listing is None:
            return
        params = {"path": to_json(source.local or source.path)}
        answer, keys = session.call("listing", params, session.request.start_timeout or float("inf"))
        if answer["fingerprint"] != opened.fingerprint:
            raise DataError(f"{source.name}: the folder changed while it was opened. Start anew")
        source.listing.compare_listing(source.name, keys, answer["counts"])
