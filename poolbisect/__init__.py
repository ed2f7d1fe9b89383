"""poolbisect: regression forensics for LLM serving."""
