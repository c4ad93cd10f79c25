"""Failovers lose a part of a sign-up with an idempotency key. The client repeats the request: one account remains."""

import pytest

from graph import Graph, keys
from graph.errors import ProblemCode, Rejected
from tests.graph.archiver.failovers import Failover
from tests.graph.archiver.world import ArchiveWorld
from tests.support.graph_worlds import PASSWORD, codes

KEY = "key of the client"


async def sign_up(graph: Graph, password: str = PASSWORD, name: str = "Dora") -> int:
    """Sign up, perhaps once more, and return the id of the user."""
    found = await graph.sign_ups.sign_up("dora", password, name, idempotency_key=KEY)
    assert (await graph.sessions.start(found.user.id, password=found.password)).user == found.user.id
    return found.user.id


async def check(world: ArchiveWorld, user: int) -> None:
    """Assert that the login belongs to this user now, and after everything has been archived."""
    for _ in range(2):
        assert await sign_up(world.graph) == user
        assert (await world.graph.users.log_in("dora", PASSWORD))[0].id == user
        await world.graph.worker().drain()
        await world.archive()
    for password, name in (("another password", "Dora"), (PASSWORD, "Dora D.")):
        with pytest.raises(Rejected) as rejected:
            await sign_up(world.graph, password, name)
        assert codes(rejected.value) == [ProblemCode.IDEMPOTENCY_MISMATCH]


@pytest.mark.parametrize("is_archived", [False, True], ids=["not archived", "archived"])
async def test_the_log_loses_the_event(world: ArchiveWorld, is_archived: bool) -> None:
    """The key of the append is lost too. The login shows that the request has created the account."""
    await world.archive()
    failover = await Failover(world).begin()
    user = await sign_up(world.graph)
    if is_archived:
        await world.archive()
    world.graph = await failover.happen()

    await check(world, user)


async def test_the_shard_of_the_login_loses_the_account(world: ArchiveWorld) -> None:
    """The repetition claims the login with the same nonce, so the event in the log gives it to the same user."""
    failover = await Failover(world, keys.login("dora")).begin()
    user = await sign_up(world.graph)
    world.graph = await failover.happen()

    await check(world, user)


async def test_the_store_loses_the_profile(world: ArchiveWorld) -> None:
    """The repetition writes the profile again from the event in the log."""
    failover = await Failover(world, "user:{").begin()
    user = await sign_up(world.graph)
    world.graph = await failover.happen()

    await check(world, user)
