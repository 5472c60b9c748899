"""The fixture ``project``, for every test in this folder."""

from project import project
