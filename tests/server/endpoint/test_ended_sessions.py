"""The cookie of a session that its user ends from the list of sessions."""

from tests.server.conftest import Api
from tests.server.endpoint.test_session_cookies import OWN, SIGN_UP, ask, cookie_of


async def test_ending_the_current_session_removes_its_cookie(api: Api) -> None:
    """This is like a log-out. Ending another session keeps the cookie."""
    token = str(cookie_of(await ask(api, SIGN_UP, **OWN)).value)
    api.client.cookies.clear()
    [user] = await api.graph.users.ids_of_logins(["carla"])
    assert user is not None
    await api.graph.sessions.start(user, "Phone")
    answer = (await ask(api, "{ viewer { sessions { id current } } }", token, **OWN)).json()
    listed = answer["data"]["viewer"]["sessions"]
    for current in (False, True):
        [id_] = [each["id"] for each in listed if each["current"] is current]
        document = f'mutation {{ endSession(input: {{sessionId: "{id_}"}}) {{ userErrors {{ code }} }} }}'
        response = await ask(api, document, token, **OWN)
        assert response.json()["data"] == {"endSession": {"userErrors": []}}
        cookies = response.headers.get_list("set-cookie")
        assert len(cookies) == current
    assert cookie_of(response)["max-age"] == "0"


async def test_a_change_of_the_password_replaces_the_cookie(api: Api) -> None:
    """The token is not in the payload. The former cookie is refused."""
    old = str(cookie_of(await ask(api, SIGN_UP, **OWN)).value)
    api.client.cookies.clear()
    document = """mutation { changePassword(
        input: {currentPassword: "a long password", newPassword: "a longer password"}
    ) { credentials { token } userErrors { code } } }"""
    response = await ask(api, document, old, **OWN)
    api.client.cookies.clear()
    assert response.json()["data"] == {"changePassword": {"credentials": {"token": None}, "userErrors": []}}
    new = str(cookie_of(response).value)
    assert (await ask(api, "{ viewer { user { login } } }", old, **OWN)).status_code == 401
    api.client.cookies.clear()
    assert (await ask(api, "{ viewer { user { login } } }", new, **OWN)).json()["data"] == {
        "viewer": {"user": {"login": "carla"}}
    }
