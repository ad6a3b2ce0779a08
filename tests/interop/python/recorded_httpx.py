"""An httpx client that keeps the last exchanges, streams included."""

from collections.abc import AsyncIterator

import httpx

from walk import CALL_TIMEOUT, Exchanges


class _Tee(httpx.AsyncByteStream):
    """Copies a response body while the SDK reads it."""

    def __init__(self, inner: httpx.AsyncByteStream, copy: bytearray) -> None:
        self._inner = inner
        self._copy = copy

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for block in self._inner:
            self._copy.extend(block)
            yield block

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Recorder(httpx.AsyncBaseTransport):
    def __init__(self, exchanges: Exchanges) -> None:
        self._inner = httpx.AsyncHTTPTransport()
        self._exchanges = exchanges

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        entry = self._exchanges.begin(request.method, str(request.url), body)
        response = await self._inner.handle_async_request(request)
        kind = response.headers.get("content-type", "")
        entry["status"] = f"{response.status_code} {kind}"
        entry["answer"] = bytearray()
        response.stream = _Tee(response.stream, entry["answer"])
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


def client(exchanges: Exchanges) -> httpx.AsyncClient:
    """A client for one walk."""
    return httpx.AsyncClient(transport=_Recorder(exchanges), timeout=CALL_TIMEOUT)
