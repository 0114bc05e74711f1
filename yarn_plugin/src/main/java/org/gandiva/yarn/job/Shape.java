package org.gandiva.yarn.job;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** How a job's devices are spread over its workers: WORKERSxGPUS, such as 2x2. */
final class Shape {
  private static final Pattern TEXT = Pattern.compile("([1-9][0-9]{0,4})x([1-9][0-9]{0,3})");

  private final int workers;
  private final int gpus;

  private Shape(int workers, int gpus) {
    this.workers = workers;
    this.gpus = gpus;
  }

  static Shape parse(String key, String text) throws BadInputException {
    Matcher matcher = TEXT.matcher(text);
    if (!matcher.matches()) {
      throw new BadInputException(
          key, JobSettings.quoted(text), "shapes such as 4x1,2x2,1x4: workers x GPUs of each");
    }
    return new Shape(Integer.parseInt(matcher.group(1)), Integer.parseInt(matcher.group(2)));
  }

  int workers() {
    return workers;
  }

  int gpus() {
    return gpus;
  }

  int total() {
    return workers * gpus;
  }
}
