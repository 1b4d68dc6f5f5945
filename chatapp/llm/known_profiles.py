"""The profiles of models that this process knows of, without asking anybody."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chatapp.llm.profiles import Profile, ProfileStore
from chatapp.llm.servers.names import server_of

#: Seconds for which a profile is believed without a look at the database: an operator's change, or
#: what another process has learned, counts so soon.
PROFILE_LIVES = 5.0


class KnownProfiles:
    """The profiles as last read from ``store``, or found out since.

    ``clock`` gives seconds that never run backwards.
    """

    def __init__(self, store: ProfileStore, clock: Callable[[], float]) -> None:
        self.revision = 0
        """Rises whenever what is known of a model changes."""
        self.first_stored = ""
        """Of the stored models that the chat's server had when last asked, the first."""
        self._store = store
        self._clock = clock
        self._profiles: dict[str, Profile] = {}
        self._recalled = False
        self._believed_until: dict[str, float] = {}
        self._reread_from: dict[str, float] = {}

    def get(self, name: str) -> Profile | None:
        """The profile of a model, however old."""
        return self._profiles.get(name)

    def believed(self, name: str) -> Profile | None:
        """The profile of a model, if it was read so lately that no look is needed."""
        fresh = self._clock() < self._believed_until.get(name, 0.0)
        return self._profiles[name] if fresh else None

    def know(self, profile: Profile) -> None:
        """Take over what was found out of a model."""
        if self._profiles.get(profile.name) != profile:
            self._profiles[profile.name] = profile
            self.revision += 1

    def believe(self, profile: Profile) -> None:
        """Take over what was read just now: for a while that needs no other look."""
        self.know(profile)
        self._believed_until[profile.name] = self._clock() + PROFILE_LIVES

    def doubt(self, name: str) -> None:
        """Have a model's profile read the next time that it is asked for."""
        self._believed_until.pop(name, None)

    def recall(self) -> None:
        """Know what is stored of each model: before the server has been asked, that is what counts.

        Reads once in the life of the process, and only where the database may be read.
        """
        if not self._recalled:
            self._remember(self._store.profiles())

    async def arecall(self) -> None:
        """As :meth:`recall`."""
        if not self._recalled:
            self._remember(await self._store.aprofiles())

    def reread(self, name: str) -> None:
        """Know what is stored of one model by now: screens do not wait for its next request.

        An operator may have changed or reset a figure, or another process learned one. Reads one
        row at most every ``PROFILE_LIVES`` seconds, and only where the database may be read.
        """
        if self._clock() < self._reread_from.get(name, 0.0):
            return
        self._reread_from[name] = self._clock() + PROFILE_LIVES
        before, stored = self._profiles.get(name), self._store.profile(name)
        # What was found out while that was read is newer.
        if stored is not None and self._profiles.get(name) is before:
            self.know(stored)

    def _remember(self, stored: Iterable[Profile]) -> None:
        for one in stored:
            # What was found out meanwhile is newer.
            self._profiles.setdefault(one.name, one)
            if one.available and not server_of(one.name):
                self.first_stored = self.first_stored or one.name
        self._recalled = True
