"""All that is of the OpenAI wire: requests, streams, errors, limits."""
