"""HTTP APIs without a network: the requests to send, and the meaning of their answers.

See docs/reference/apis.md.
"""
