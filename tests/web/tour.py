"""A walk through the screens of the web app, in one page."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.web.stage import Stage

PHONE: dict[str, Any] = {"width": 390, "height": 780}
DESKTOP: dict[str, Any] = {"width": 1100, "height": 800}


@dataclass
class Tour:
    """Opens screens in one page, collects what axe finds on them, and takes pictures if there is a folder."""

    stage: Stage
    folder: Path | None
    found: list[str] = field(default_factory=list)

    async def do(self, action: str, **values: Any) -> Any:
        """Do something on the page."""
        return await self.stage.browser.do(action, "p", **values)

    async def go(self, route: str, role: str, name: str) -> None:
        """Open a route, and wait for an element."""
        await self.do("go", hash=f"#/{route}")
        await self.do("see", role=role, name=name)

    async def log_in(self, login: str, password: str) -> None:
        """Fill in and submit the log-in form."""
        await self.do("fill", label="Login", text=login)
        await self.do("fill", label="Password", text=password)
        await self.do("click", role="button", name="Log in")

    async def shoot(self, name: str, *, check: bool = True) -> None:
        """Check a screen. With a folder, also take pictures on a phone and a desktop, and check the dark theme."""
        for form, size in (("phone", PHONE), ("desktop", DESKTOP)) if self.folder else ():
            await self.do("size", **size)
            for theme in ("dark", "light"):
                await self.do("theme", dark=theme == "dark")
                await self.do("shot", path=f"{self.folder}/{name}-{form}-{theme}.png")
                if check and theme == "dark" and form == "desktop":
                    self.found += [f"{name}, dark: {each}" for each in await self.do("axe", rules=["color-contrast"])]
        if check:
            self.found += [f"{name}: {each}" for each in await self.do("axe")]
