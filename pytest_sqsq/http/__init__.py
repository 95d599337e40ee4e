"""The HTTP front end: a threaded werkzeug server with its own request handler, and a WSGI app."""
