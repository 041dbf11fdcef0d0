"""What a source is opened with: the one list of the types of connections."""

from __future__ import annotations

from resources.connections.api import ApiConnection
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.user_functions import UserCode

SourceConnection = Place | JdbcConnection | ApiConnection | UserCode
"""The place of a dataflow's rows: a root of files or a table, a database, an API, or code of the user."""
