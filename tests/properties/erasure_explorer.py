"""An exhaustive explorer of the rule for the erasure of a deleted user (`graph/erasure`), in plain Python.

One element connects the user with another one: a follow in either direction, a like, a post, a block or a mute. Tabs
add and remove it while the user's account is deleted, workers project, the archiver archives and cuts, and erasers read
and append. The explorer visits every state that these steps can reach in any order. A step is one script, one append or
one read. Every process may die between any two steps, and late repetitions arrive after tombstones were trimmed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.properties.erasure_states import Client, Eraser, Job, Kind, State, deletion_of, standing, watermark_of


@dataclass(frozen=True)
class Rule:
    """The rule, and versions of it with a part left out."""

    refuses: bool = True
    waits: bool = True
    reads_archive: bool = True
    keeps_floors: bool = True


class Wrong(AssertionError):
    """A reachable state breaks an invariant."""


class Explorer:
    """Explores what tabs can do with an element of this kind while the account is deleted.

    `late` is the number of late repetitions, `runs` the number of erasers that are started, one after the other or side
    by side. With `archived`, the element is old: at first it is only in the archive.
    """

    def __init__(
        self,
        kind: Kind,
        *tabs: Sequence[str],
        rule: Rule = Rule(),
        late: int = 0,
        runs: int = 2,
        workers: int = 1,
        archived: bool = False,
    ) -> None:
        self.kind = kind
        self.rule = rule
        self.late = late
        self.runs = runs
        self.workers = workers
        self.erased = 0
        first = State(tuple(Client(tuple(tab)) for tab in tabs))
        if archived:
            old = first.own._replace(cut=1)
            first = first._replace(log=("add",), own=old, theirs=old, cold=1, projected=1, archived=1)
        self.first = first

    def run(self) -> int:
        """Visit all reachable states, and return their number. Raises Wrong for a state that breaks an invariant."""
        seen, waiting = {self.first}, [self.first]
        while waiting:
            state = waiting.pop()
            self.check(state)
            for after in self.successors(state):
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        if not self.erased:
            raise Wrong("no order of steps erases the user")
        return len(seen)

    def check(self, state: State) -> None:
        """Check the sets once everything is projected, and that nothing is left of an erased user."""
        if state.projected < (1 << len(state.log)) - 1 or state.jobs or state.erasers:
            return
        if any(client.job is not None for client in state.clients):
            return
        live = standing(state.log, len(state.log))
        if (state.theirs.member > 0) + state.cold != (live > 0):
            raise Wrong(f"the others hold {state.theirs} and count {state.cold}, but {live} stands: {state}")
        if "own" in self.kind.adds and (state.own.member or self.archived_of(state, live)) != live:
            raise Wrong(f"the user's set holds {state.own}, but {live} stands: {state}")
        if "erased" not in state.log or state.erasing or any(client.operations for client in state.clients):
            return
        if live or state.own.member or state.theirs.member or state.cold:
            raise Wrong(f"something of the user is left: {state}")
        self.erased += 1

    @staticmethod
    def archived_of(state: State, live: int) -> int:
        """Return the element's number if it is so old that the user's set need not hold it, else 0."""
        return live if live <= state.own.cut else 0

    def successors(self, state: State) -> Iterator[State]:
        """Yield the states after each possible next step."""
        for place, client in enumerate(state.clients):
            for after, moved in self.of_client(state, client):
                yield after._replace(clients=(*state.clients[:place], moved, *state.clients[place + 1 :]))
        for place, job in enumerate(state.jobs):
            rest = state._replace(jobs=(*state.jobs[:place], *state.jobs[place + 1 :]))
            yield rest  # the worker dies
            further, left = self.of_job(rest, job)
            if left is not None:
                yield further._replace(jobs=tuple(sorted((*further.jobs, left))))
            else:
                yield further._replace(projected=further.projected | 1 << (job.number - 1))
        if len(state.jobs) < self.workers:
            for number in range(1, len(state.log) + 1):
                is_late = state.projected >> (number - 1) & 1
                if (not is_late or state.late < self.late) and Job(number) not in state.jobs:
                    late = state.late + is_late
                    yield state._replace(jobs=tuple(sorted((*state.jobs, Job(number)))), late=late)
        yield from self.upkeep(state)
        yield from self.erasures(state)

    def upkeep(self, state: State) -> Iterator[State]:
        """Yield the states after a step of the archiver, a trim or a cut."""
        if state.archived < watermark_of(state):
            yield state._replace(archived=watermark_of(state))
        up_to = state.archived
        yield state._replace(own=state.own.trim(up_to))
        yield state._replace(theirs=state.theirs.trim(up_to))
        if self.kind.is_cut and up_to:
            yield state._replace(own=state.own.cut_to(up_to))
            was_member = 0 < state.theirs.member <= up_to
            yield state._replace(theirs=state.theirs.cut_to(up_to), cold=state.cold + was_member)

    # The requests of clients.

    def of_client(self, state: State, client: Client) -> Iterator[tuple[State, Client]]:
        """Yield the states after the next step of a tab, with the tab."""
        if client.job is not None:
            yield state, Client(())  # the process dies
            yield state, Client(client.operations[1:])  # a second has passed: the rest is left to the worker
            state, job = self.of_job(state, client.job)
            yield state, client._replace(job=job) if job is not None else Client(client.operations[1:])
        elif client.operations:
            if not client.is_checked:
                yield state, Client(()) if state.is_buried else client._replace(is_checked=True)
                return
            yield state, Client(())
            is_refused = self.rule.refuses or client.operations[0] == "delete"
            if deletion_of(state.log) and is_refused:
                yield state, Client(())
            else:
                state = state._replace(log=(*state.log, client.operations[0]))
                yield state, client._replace(job=Job(len(state.log)))

    # The eraser.

    def erasures(self, state: State) -> Iterator[State]:
        """Yield the states after a step of an eraser. An eraser may die at any time, and others may be started."""
        if state.erasing and state.runs < self.runs:
            erasers = tuple(sorted((*state.erasers, Eraser(deletion_of(state.log)))))
            yield state._replace(erasers=erasers, runs=state.runs + 1)
        for place, eraser in enumerate(state.erasers):
            rest = state._replace(erasers=(*state.erasers[:place], *state.erasers[place + 1 :]))
            yield rest
            for after, moved in self.of_eraser(rest, eraser):
                yield after if moved is None else after._replace(erasers=tuple(sorted((*after.erasers, moved))))

    def of_eraser(self, state: State, eraser: Eraser) -> Iterator[tuple[State, Eraser | None]]:
        """Wait for the watermark; read the user's set, then the archive; append a removal or the user's erasure."""
        match eraser.step:
            case "wait":
                if watermark_of(state) >= eraser.up_to or self.is_hasty(state, eraser):
                    yield state, eraser._replace(step="read")
            case "read":
                yield state, eraser._replace(step="append" if state.own.member else "archive")
            case "archive":
                if state.archived >= eraser.up_to or self.is_hasty(state, eraser):
                    is_live = self.rule.reads_archive and standing(state.log, state.archived)
                    yield state, eraser._replace(step="append" if is_live else "finish")
            case "append":
                state = state._replace(log=(*state.log, "remove"))
                yield state, Eraser(len(state.log))
            case _:
                yield state._replace(log=(*state.log, "erased")), None

    def is_hasty(self, state: State, eraser: Eraser) -> bool:
        """Return True if the rule lets an eraser begin before all events up to the deletion are known."""
        return not self.rule.waits and eraser.up_to == deletion_of(state.log)

    # The projection of events.

    def of_job(self, state: State, job: Job) -> tuple[State, Job | None]:
        """Return the state after the next step of a projection, and the job before the following step, or None."""
        match state.log[job.number - 1]:
            case "add":
                state, steps = self.change(state, job, self.kind.adds[job.step]), len(self.kind.adds)
            case "remove":
                state, steps = self.change(state, job, self.kind.removes[job.step]), len(self.kind.removes)
            case "delete":
                state, steps = self.bury(state, job.step), 2
            case _:
                state, steps = self.forget(state, job), 2
        return state, job._replace(step=job.step + 1) if job.step + 1 < steps else None

    @staticmethod
    def change(state: State, job: Job, slot: str) -> State:
        """Add the element to a slot or remove it. If the element was archived, update the other side's count."""
        is_added = state.log[job.number - 1] == "add"
        held = state.own if slot == "own" else state.theirs
        changed = held.add(job.number) if is_added else held.remove(job.number)
        if slot == "own":
            return state._replace(own=changed)
        was_archived = held.is_unknown and changed != held and standing(state.log, held.floor) > 0
        return state._replace(theirs=changed, cold=state.cold - was_archived)

    @staticmethod
    def bury(state: State, step: int) -> State:
        """Project the deletion: first the tombstone of the user, then the work of the eraser."""
        if step == 0:
            return state._replace(is_buried=True)
        return state._replace(erasing=True)

    def forget(self, state: State, job: Job) -> State:
        """Project that the user is erased: first the user's sets, then the end of the eraser's work."""
        if job.step == 0:
            return state._replace(own=state.own.forget(job.number if self.rule.keeps_floors else 0))
        return state._replace(erasing=False)
