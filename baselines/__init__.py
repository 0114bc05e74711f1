"""Schedulers that Gandiva is compared with."""
