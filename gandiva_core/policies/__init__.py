"""Gandiva's own rules, one mechanism a file, as pure generators of decisions; `gandiva` composes them."""
