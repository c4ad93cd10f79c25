"""The hosts from which readers' browsers load pictures and videos.

A host learns who loads its files, so the operator lists the hosts in the setting `media_hosts`. A URL is checked when
it is stored, and again when it is shown: the list may have been shortened, and earlier versions did not check pictures.
"""

from graph.errors import ProblemCode
from graph.text.validation import Check
from graph.text.web_urls import authority_of


def media_url(check: Check, given: str, hosts: frozenset[str], what: str, *path: str) -> str:
    """Check and return the normalised URL of a file: it must use `https` and one of `hosts`.

    An empty text stays empty. `what` names the kind of file in the error message of a server that accepts none.
    """
    url = check.url(given, *path)
    if url and not may_show(url, hosts):
        accepted = f"Files from this host are not accepted. Use one of these: {', '.join(sorted(hosts)[:5])}."
        check.fail(ProblemCode.INVALID, accepted if hosts else f"This server accepts no {what}.", *path)
    return url


def may_show(url: str, hosts: frozenset[str]) -> bool:
    """Return True if a stored URL is on one of the hosts."""
    return authority_of(url) in hosts
