package org.gandiva.yarn.job;

/** A value of the user's that cannot be used: where it is, what it is, what it should be. */
public final class BadInputException extends Exception {
  private static final long serialVersionUID = 1L;

  /**
   * Creates the failure.
   *
   * @param place a key, an option or a file
   */
  public BadInputException(String place, String found, String expected) {
    super(oneLine(place + ": found " + found + ", expected " + expected));
  }

  private static String oneLine(String text) {
    StringBuilder line = new StringBuilder(text.length());
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      line.append(Character.isISOControl(c) ? ' ' : c);
    }
    return line.toString();
  }
}
