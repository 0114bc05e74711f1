package org.gandiva.yarn.gateway;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class OnlyTheGatewayKnowsPy4jTest {
  @Test
  void noOtherPackageImportsIt() throws IOException {
    try (Stream<Path> sources = Files.walk(Paths.get("src/main/java"))) {
      List<String> importers =
          sources
              .filter(source -> source.toString().endsWith(".java"))
              .filter(source -> text(source).contains("import py4j."))
              .map(source -> source.getParent().getFileName().toString())
              .distinct()
              .collect(Collectors.toList());
      assertThat(importers).containsExactly("gateway");
    }
  }

  private static String text(Path source) {
    try {
      return new String(Files.readAllBytes(source), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
