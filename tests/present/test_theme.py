"""The theme: colours that mean the same everywhere, can be seen on both backgrounds, and have a dark twin."""

import plotly.graph_objects as go
import pytest

from kvstudy.present import theme


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", [*theme.CATEGORIES, *theme.RAMP, theme.SATURATION, theme.WARNING])
def test_every_line_colour_can_be_seen_on_its_background(colour):
    assert contrast(colour, theme.PAPER) >= 3
    assert contrast(theme.TWINS[colour], theme.TWINS[theme.PAPER]) >= 3


@pytest.mark.parametrize("colour", [theme.TEXT, theme.QUIET_TEXT])
def test_text_can_be_read_on_its_background(colour):
    assert contrast(colour, theme.PAPER) >= 4.5
    assert contrast(theme.TWINS[colour], theme.TWINS[theme.PAPER]) >= 4.5


def test_the_ramp_rises_in_lightness_so_that_it_is_read_without_hue():
    lightness = [_luminance(colour) for colour in theme.RAMP]
    assert lightness == sorted(lightness)
    dark = [_luminance(theme.TWINS[colour]) for colour in theme.RAMP]
    assert dark == sorted(dark)


def test_a_value_has_the_same_colour_whatever_it_stands_beside():
    assert (
        theme.colours("workload", ["unique_put"])["unique_put"]
        == theme.colours("workload", ["x", "unique_put", "a"])["unique_put"]
    )
    assert theme.colours("connections", [1, 4])[4] == theme.colours("connections", [4, 16, 64])[4]


def test_no_two_values_of_a_factor_share_a_colour():
    for factor, values in (
        ("connections", [1, 2, 4, 16, 64]),
        ("offered_rate_rps", [1e3, 2e3, 4e3]),
        ("variant", ["", "handler=workers", "PUT"]),
    ):
        assert len(set(theme.colours(factor, values).values())) == len(values)


def test_dark_replaces_every_colour_of_the_theme_and_nothing_else():
    light = go.Figure(go.Scatter(x=[1], y=[2], line={"color": theme.BLUE}, marker={"color": "#123456"}))
    twin = theme.dark(light)
    assert twin.data[0].line.color == theme.TWINS[theme.BLUE]
    assert twin.data[0].marker.color == "#123456"
    assert twin.layout.template.layout.paper_bgcolor == theme.TWINS[theme.PAPER]
    assert light.data[0].line.color == theme.BLUE


def test_the_share_chart_button_that_uploads_is_off():
    assert theme.CONFIG["showSendToCloud"] is False


def test_the_workloads_that_stand_in_one_chart_have_colours_of_their_own():
    together = ["unique_put", "repeated_put", "unique_get", "repeated_get", "get", "put", "mixed"]
    assert len(set(theme.colours("workload", together).values())) == len(together)
