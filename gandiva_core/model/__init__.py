"""The nouns of the field, frozen: jobs, servers, placements, profiles, and what a policy may see of them."""
