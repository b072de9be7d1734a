"""The handlers: each reads a request, calls what does the work, and words the answer."""
