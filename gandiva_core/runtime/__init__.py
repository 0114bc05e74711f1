"""The imperative shell around the pure core: ports, driver, journal, recheck."""
