"""Pages in a headless browser: opened with everything that they logged or asked for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


def opened(browser: Browser, file: Path, *, width: int, dark: bool = False, script: bool = True) -> tuple[Page, list[str]]:
    """Open a page and return it with everything it logged or requested beyond itself."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", java_script_enabled=script
    )
    page = context.new_page()
    seen: list[str] = []
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("dialog", lambda dialog: seen.append(dialog.message))
    page.on("request", lambda request: seen.append(request.url) if request.url != file.as_uri() else None)
    page.goto(file.as_uri())
    return page, seen


def saved(folder: Path, said: str) -> Path:
    file = folder / "report.html"
    file.write_text(said, encoding="utf-8")
    return file
