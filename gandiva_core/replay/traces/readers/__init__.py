"""One file a format; each exports `FORMAT`."""
