"""The server probe: a real SGLang (or any OpenAI-compatible server) launched, asked and ended."""
