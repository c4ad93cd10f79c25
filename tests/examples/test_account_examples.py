"""The examples about the viewer's account, in the small demo world of the other examples."""

from tests.examples.alice import Alice


async def test_update_profile(alice: Alice) -> None:
    """The default variables change the bio and the website only."""
    user = (await alice.run("update-profile"))["updateProfile"]["user"]
    assert (user["name"], user["bio"]) == ("Alice", "Trying out the playground. 你好！")
    assert (user["avatarUrl"], user["websiteUrl"]) == (None, "https://example.org/me")


async def test_sign_up(alice: Alice) -> None:
    """The default variables are accepted once; then the login is taken."""
    assert (await alice.run("sign-up"))["signUp"]["credentials"]["viewer"]["user"]["login"] == "newcomer"
    [error] = (await alice.run("sign-up"))["signUp"]["userErrors"]
    assert error["code"] == "LOGIN_TAKEN"


async def test_log_out(alice: Alice) -> None:
    assert (await alice.run("log-out"))["logOut"] == {"userErrors": []}


async def test_change_password(alice: Alice) -> None:
    """A wrong password is refused."""
    refused = await alice.run("change-password", currentPassword="a guess", newPassword="a new password")
    assert [error["code"] for error in refused["changePassword"]["userErrors"]] == ["WRONG_CREDENTIALS"]


async def test_delete_account(alice: Alice) -> None:
    """A wrong password is refused."""
    refused = await alice.run("delete-account", password="a guess")
    assert [error["code"] for error in refused["deleteAccount"]["userErrors"]] == ["WRONG_CREDENTIALS"]


async def test_sessions(alice: Alice) -> None:
    """The session of a log-in is listed until it is ended."""
    await alice.graph.sessions.start(alice.people["alice"], "Lost phone")
    listed = (await alice.run("sessions"))["viewer"]["sessions"]
    lost, current = sorted(listed, key=lambda session: session["current"])
    assert (lost["userAgent"], lost["current"], current["current"]) == ("Lost phone", False, True)
    ended = (await alice.run("end-session", sessionId=lost["id"]))["endSession"]
    assert ended == {"endedSessionId": lost["id"], "userErrors": []}
    assert [session["id"] for session in (await alice.run("sessions"))["viewer"]["sessions"]] == [current["id"]]
