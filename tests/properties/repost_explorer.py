"""An exhaustive explorer of the rule for plain reposts (`graph/projections/reposts.py`), in plain Python.

One user reposts one original, in several tabs, and takes the repost back, while the author deletes the original. The
explorer visits every state that the steps of clients, workers, the archiver and the scan can reach in any order. A step
is one script or one append. Clients and workers may die between any two steps, workers repeat events, and late
repetitions run after tombstones were dropped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.properties.repost_states import (
    COLD,
    DROPPED,
    Client,
    Entry,
    Job,
    Listed,
    State,
    appended,
    bury,
    deletion,
    is_repost,
    latest,
    next_operation,
    standing,
    watermark_of,
)


@dataclass(frozen=True)
class Rule:
    """The rule, and versions of it with a part left out."""

    begins_at_original: bool = True
    stops_at_tombstone: bool = True
    buries_before_reading: bool = True
    undoes_void_reposts: bool = True
    asks_about_absent_originals: bool = True
    takes_back: bool = True
    finishes_replacements: bool = True
    confirms_repetitions: bool = True
    versions_keys: bool = True


class Wrong(AssertionError):
    """A reachable state breaks an invariant."""


class Explorer:
    """Explores what tabs can do. `late` limits late repetitions. With `expires`, idempotency keys may be forgotten."""

    def __init__(
        self,
        *tabs: Sequence[str],
        rule: Rule = Rule(),
        late: int = 0,
        expires: bool = False,
        cold: bool = False,
        workers: int = 1,
    ) -> None:
        self.rule = rule
        self.workers = workers
        self.late = late
        self.expires = expires
        self.first = State(tuple(Client(tuple(tab)) for tab in tabs), original=COLD if cold else 0)

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
        return len(seen)

    def check(self, state: State) -> None:
        """Check the properties of every state, and those of a state in which everything is projected."""
        if state.listed != {state.reposted.member} - {0}:
            raise Wrong(f"the timeline does not list what the register holds: {state}")
        if not state.listed <= state.reposts.members and state.original != DROPPED:
            raise Wrong(f"the original does not know a repost: {state}")
        reposts = [entry.kind for entry in state.log if entry.kind != "delete"]
        if not self.expires and any(a == b == "repost" for a, b in pairwise(reposts)):
            raise Wrong(f"two tabs made two reposts: {state}")
        if state.projected < (1 << len(state.log)) - 1 or state.jobs or any(client.job for client in state.clients):
            return
        live = standing(state.log, len(state.log))
        if deletion(state.log) and live:
            raise Wrong(f"the events do not say that a repost of a deleted post is gone: {state}")
        under = state.reposts.members if state.original != DROPPED else {live} - {0}
        if state.reposted.member != live or under != {live} - {0}:
            raise Wrong(f"the register and the list hold {state.reposted.member} and {under}, not {live}: {state}")
        if live and (live not in state.records or any(repost == live for repost, _ in state.buried)):
            raise Wrong(f"repost {live} has no record: {state}")
        if self.leaks(state) and not self.may_leak(state):
            raise Wrong(f"reposts {sorted(self.leaks(state))} have records: {state}")

    def leaks(self, state: State) -> frozenset[int]:
        """Return the reposts that were taken back but still have a record."""
        return state.records - {repost for repost, _ in state.buried} - {state.reposted.member}

    def may_leak(self, state: State) -> bool:
        """Return True if a client may have died after it wrote a record late. The scan frees such records."""
        return bool(state.archived)

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
                job = Job(number, by_worker=True)
                if (not is_late or state.late < self.late) and job not in state.jobs:
                    late = state.late + is_late
                    yield state._replace(jobs=tuple(sorted((*state.jobs, job))), late=late)
        yield from self.upkeep(state)

    def upkeep(self, state: State) -> Iterator[State]:
        """Yield the states after a step of the archiver, a trim or the scan."""
        watermark = watermark_of(state)
        if state.archived < watermark and self.late:
            yield state._replace(archived=watermark)
        up_to = state.archived
        yield state._replace(reposts=state.reposts.trim(up_to))
        yield state._replace(
            reposted=state.reposted.trim(up_to),
            unlisted=frozenset(each for each in state.unlisted if each[1] > up_to),
        )
        if 0 < state.original <= up_to:
            yield state._replace(original=DROPPED, reposts=Listed(state.reposts.members))
        dropped = frozenset(each for each in state.buried if each[1] > up_to)
        undone = {entry.target for entry in state.log[:up_to] if entry.kind == "unrepost"}
        records = state.records - {repost for repost, number in state.buried if number <= up_to} - undone
        if dropped != state.buried or records != state.records:
            yield state._replace(buried=dropped, records=records)
        if self.expires and state.used:
            yield state._replace(used=frozenset())

    # The projection of events.

    def of_job(self, state: State, job: Job) -> tuple[State, Job | None]:
        """Return the state after the next step of a projection, and the job before the following step, or None."""
        entry = state.log[job.number - 1]
        steps = {"repost": self.project_repost, "unrepost": self.project_unrepost, "delete": self.project_deletion}
        return steps[entry.kind](state, job)

    def project_repost(self, state: State, job: Job) -> tuple[State, Job | None]:
        """Project a repost: the record, the list of the original, then the register with the timeline."""
        n, step = job.number, job.step
        order = (
            ("record", "original", "register") if self.rule.begins_at_original else ("record", "register", "original")
        )
        step = order[0] if step == "begin" else step
        follow = dict(zip(order, (*order[1:], None), strict=True))
        if step == "original":
            if state.original > 0 and self.rule.stops_at_tombstone:
                return state, job._replace(step="void") if job.by_worker and self.rule.undoes_void_reposts else None
            state = state._replace(reposts=state.reposts.add(n))
            asks = job.by_worker and state.original < 0 and self.rule.asks_about_absent_originals
            return after(state, job, "ask" if asks else follow["original"])
        if step == "ask":
            is_gone = 0 < deletion(state.log) <= state.archived
            return after(state, job, "void" if is_gone else follow["original"])
        if step == "void":
            return appended(state, Entry("unrepost", n), f"unrepost {n}")[0], None
        if step == "record":
            if n not in {repost for repost, _ in state.buried}:
                state = state._replace(records=state.records | {n})
            return after(state, job, follow["record"])
        if step == "register":
            return self.register(state, job, follow["register"])
        if step == "replaced":
            return bury(state, self.replaced(state, job), n), job._replace(step="unlist", found=0)
        if step == "bury":
            state = bury(bury(state, [n], job.found), self.replaced(state, job), n)
            return after(state, job, "unlist")
        reposts = state.reposts.remove(self.replaced(state, job), n)
        return state._replace(reposts=reposts.remove([n], job.found) if job.found else reposts), None

    def replaced(self, state: State, job: Job) -> list[int]:
        """Return the reposts that this one replaced in the timeline, in this projection or an earlier one."""
        if self.rule.finishes_replacements:
            return [repost for repost, number in state.unlisted if number == job.number]
        return []

    def register(self, state: State, job: Job, then: str | None) -> tuple[State, Job | None]:
        """Set the register and list the repost, unless a later event has decided."""
        n, version = job.number, state.reposted.version
        if n < version:
            stale = job._replace(step="bury", found=version)
            return state, stale if self.rule.takes_back else None
        old = state.reposted.member if n > version else 0
        listed = (state.listed - {old}) | {n}
        unlisted = state.unlisted | {(old, n)} if old else state.unlisted
        state = state._replace(reposted=state.reposted.add(n), listed=listed, unlisted=unlisted)
        return state, job._replace(step=then or "replaced", found=old)

    def project_unrepost(self, state: State, job: Job) -> tuple[State, Job | None]:
        """Project the end of a repost: the register with the timeline, the records, then the set of the original."""
        m, target = job.number, state.log[job.number - 1].target
        if job.step == "begin":
            undone = {target, state.reposted.member} - {0} if m > state.reposted.version else {target}
            known = {repost: number for repost, number in state.unlisted if repost in undone}
            unlisted = state.unlisted - {*known.items()} | {(each, min(m, known.get(each, m))) for each in undone}
            state = state._replace(reposted=state.reposted.remove(m), unlisted=frozenset(unlisted))
            state = state._replace(listed=state.listed & {state.reposted.member})
            return state, job._replace(step="records")
        if job.step == "records":
            undone = {repost for repost, number in state.unlisted if number == m} | {target}
            return bury(state, undone, m), job._replace(step="original")
        undone = {repost for repost, number in state.unlisted if number == m} | {target}
        return state._replace(reposts=state.reposts.remove(undone, m)), None

    def project_deletion(self, state: State, job: Job) -> tuple[State, Job | None]:
        """Project the deletion of the original: its tombstone, then the end of each repost."""
        steps = ["bury", "read"] if self.rule.buries_before_reading else ["read", "bury"]
        step = steps[0] if job.step == "begin" else job.step
        then = {steps[0]: steps[1], steps[1]: "append" if job.by_worker else None}
        if step == "bury":
            if state.original <= 0 and state.original != DROPPED:
                state = state._replace(original=job.number)
            return after(state, job, then["bury"] if job.by_worker else None)
        if step == "read":
            return after(state, job._replace(found=max(state.reposts.members, default=0)), then["read"])
        left = sorted((repost for repost in state.reposts.members if repost <= job.found), reverse=True)
        for repost in left[:1]:
            state, _ = appended(state, Entry("unrepost", repost), f"unrepost {repost}")
        return after(state, job._replace(found=left[1]) if left[1:] else job, "append" if left[1:] else None)

    # The requests of clients.

    def of_client(self, state: State, client: Client) -> Iterator[tuple[State, Client]]:
        """Yield the states after the next step of a tab, with the tab."""
        if client.job is not None:
            yield state, Client(())  # the process dies
            yield state, self.answered(state, client)  # a second has passed: the rest is left to the worker
            state, job = self.of_job(state, client.job)
            yield state, client._replace(job=job) if job is not None else self.answered(state, client)
        elif client.operations:
            operation = client.operations[0]
            if client.step != "begin":
                yield state, Client(())
            yield from {"repost": self.repost, "unrepost": self.unrepost, "delete": self.delete}[operation](
                state, client
            )

    def repost(self, state: State, client: Client) -> Iterator[tuple[State, Client]]:
        """Read the register; append with a key that contains its version; confirm a repost that already existed."""
        match client.step:
            case "begin":
                client = client._replace(since=len(state.log), watermark=watermark_of(state))
                if state.original > 0 or (state.original < 0 and 0 < deletion(state.log) <= state.archived):
                    yield state, next_operation(client)  # NOT_FOUND
                else:
                    step = "confirm" if state.reposted.member else "append"
                    yield state, client._replace(step=step, version=state.reposted.member or state.reposted.gone)
            case "confirm":
                number = latest(state, client.watermark)
                if number and is_repost(state.log, number):
                    self.check_repost(state, client, number)
                    yield state, next_operation(client)
                elif number != client.version or number == 0:
                    yield state, client._replace(step="append", version=number or client.version)
                else:
                    yield state, client._replace(step="append")
            case _:
                key = f"repost {client.version if self.rule.versions_keys else 0}"
                state, (number, is_new) = appended(state, Entry("repost"), key)
                if is_new or not self.rule.confirms_repetitions:
                    yield state, client._replace(job=Job(number, by_worker=False), version=number)
                else:
                    yield state, client._replace(step="confirm", version=number)

    def unrepost(self, state: State, client: Client) -> Iterator[tuple[State, Client]]:
        """Read the register; if it is empty, confirm that; append the end of the repost."""
        match client.step:
            case "begin":
                client = client._replace(since=len(state.log), watermark=watermark_of(state))
                step = "append" if state.reposted.member else "confirm"
                yield state, client._replace(step=step, version=state.reposted.member)
            case "confirm":
                number = latest(state, client.watermark)
                if number and is_repost(state.log, number):
                    yield state, client._replace(step="append", version=number)
                else:
                    self.check_unrepost(state, client)
                    yield state, next_operation(client)
            case _:
                state, (number, _) = appended(state, Entry("unrepost", client.version), f"unrepost {client.version}")
                self.check_unrepost(state, client)
                yield state, client._replace(job=Job(number, by_worker=False))

    def delete(self, state: State, client: Client) -> Iterator[tuple[State, Client]]:
        """Append the deletion of the original."""
        state, (number, _) = appended(state, Entry("delete"), "delete")
        yield state, client._replace(job=Job(number, by_worker=False))

    def answered(self, state: State, client: Client) -> Client:
        """Return a client whose request is projected, and check the answer."""
        if client.operations[0] == "repost" and not deletion(state.log):
            self.check_repost(state, client, client.version)
        return next_operation(client)

    def check_repost(self, state: State, client: Client, number: int) -> None:
        """Check that the repost stood at some time during the request."""
        if not any(standing(state.log, up_to) == number for up_to in range(client.since, len(state.log) + 1)):
            raise Wrong(f"the answer {number} was never true during the request: {client} {state}")

    def check_unrepost(self, state: State, client: Client) -> None:
        """Check that there was no repost at some time during the request."""
        if all(standing(state.log, up_to) for up_to in range(client.since, len(state.log) + 1)):
            raise Wrong(f"there was a repost throughout the request to end it: {client} {state}")


def after(state: State, job: Job, step: str | None) -> tuple[State, Job | None]:
    """Return the state, and the job with its next step, or None if there is none."""
    return state, None if step is None else job._replace(step=step)
