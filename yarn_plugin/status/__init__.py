"""`gandiva status`: how a ResourceManager with Gandiva does."""
