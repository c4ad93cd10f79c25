"""Rotation of the signing key over several instances: every step accepts the tokens of all instances."""

from itertools import pairwise, product
from pathlib import Path

from graph import Graph
from server.settings import Settings
from tests.server.conftest import Api, serving
from tests.support.graphs import archive_url_of

OLD = "the old key of the rotation, long enough"
NEW = "the new key of the rotation, long enough"
SIGN_UP = """mutation ($login: String!) { signUp(input: {login: $login, password: "correct horse"}) {
    credentials { token } } }"""


async def enter(api: Api, login: str) -> str:
    """Sign up a user. Return a token."""
    return str((await api.ask(SIGN_UP, login=login)).json()["data"]["signUp"]["credentials"]["token"])


async def status(api: Api, token: str) -> int:
    """Query the viewer. Return the status."""
    return (await api.ask("{ viewer { user { login } } }", token)).status_code


async def test_a_rolling_rotation_refuses_no_token(store_url: str, tmp_path: Path, graph: Graph) -> None:
    """Add the new key last, move it to the front, then remove the old key when its sessions have ended."""
    issued = list[str]()
    steps = [(OLD,), (OLD, NEW), (NEW, OLD)]
    for number, keys in enumerate(pairwise(steps)):
        settings = [
            Settings(
                store_url=store_url, archive_url=archive_url_of(store_url), data_dir=tmp_path, secret=each, worker=False
            )
            for each in keys
        ]
        async with serving(settings[0], graph) as before, serving(settings[1], graph) as after:
            issued += [await enter(before, f"before{number}"), await enter(after, f"after{number}")]
            assert {await status(*pair) for pair in product((before, after), issued)} == {200}

    last = Settings(
        store_url=store_url, archive_url=archive_url_of(store_url), data_dir=tmp_path, secret=(NEW,), worker=False
    )
    async with serving(last, graph) as api:
        signed_by_new = [await status(api, token) for token in issued]
        assert signed_by_new == [401, 401, 401, 200]
        answer = await api.ask("{ viewer { user { login } } }", issued[0])
        assert "its key was retired. Log in again" in answer.json()["errors"][0]["message"]
