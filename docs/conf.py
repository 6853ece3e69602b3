"""Configuration of the Sphinx build."""

import sklearn_bijection

project = "sklearn_bijection"
author = "The sklearn_bijection developers"
copyright = "2026, The sklearn_bijection developers"
version = release = sklearn_bijection.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# What comes from scikit-learn is documented there, with references that only its own pages resolve.
_SKLEARN_BASES = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "MetaEstimatorMixin",
    "MultiOutputMixin",
    "RegressorMixin",
    "TransformerMixin",
    "_MetadataRequester",
]
_SKLEARN_METHODS = [
    "fit_transform",
    "get_metadata_routing",
    "get_params",
    "set_output",
    "set_params",
    *(
        f"set_{method}_request"
        for method in ["fit", "partial_fit", "predict", "score", "transform", "inverse_transform"]
    ),
]
autodoc_default_options = {
    "members": True,
    "inherited-members": ", ".join([*_SKLEARN_BASES, "Module", "tuple", "object"]),
    "exclude-members": ", ".join(_SKLEARN_METHODS),
}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say more: shapes, ranges, defaults
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "sklearn_bijection"
html_theme_options = {"show_toc_level": 2, "navbar_align": "left"}
html_show_sourcelink = False
