"""The three kinds of message, and the policy protocol.

Events are facts, decisions a policy's wishes, effects commands to the outside.
"""
