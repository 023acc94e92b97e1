"""Dead letters and rejected messages: read, assess, correct and resend them."""
