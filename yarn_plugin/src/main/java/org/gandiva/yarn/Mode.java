package org.gandiva.yarn;

import java.util.Locale;

/** What of Gandiva is in force; an administrator goes through them one by one. */
enum Mode {
  /** Hadoop schedules GPU asks; the core watches, and what it decides is only written down. */
  OBSERVE,
  /** The core places; no device is shared. */
  PLACE,
  /** Devices are shared as well. */
  FULL;

  static Mode of(String word) {
    return valueOf(word.toUpperCase(Locale.ROOT));
  }

  String word() {
    return name().toLowerCase(Locale.ROOT);
  }
}
