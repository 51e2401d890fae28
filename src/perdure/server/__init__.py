"""The edge: ASGI app, WebSocket connections, HTTP routes, who may come in, the page.

Imports ``host`` and what lies below.
"""
