"""The three kinds of message: events (facts), decisions (a policy's wish), effects (commands), and the policy protocol."""
