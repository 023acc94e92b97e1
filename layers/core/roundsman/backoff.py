"""How long to wait before the next attempt: exponential backoff with full jitter."""

from roundsman.plan import RetryPlan


def retry_delay(retry: RetryPlan, failures: int, jitter: float) -> int:
    """The wait in ms after this many failures (1 or more); `jitter` is in [0, 1).

    Full jitter draws from the whole range below the cap, which spreads a crowd of retries best:
    AWS Architecture Blog, "Exponential Backoff And Jitter".
    """
    doubled = retry.first_delay * 2 ** min(failures - 1, 40)
    return int(min(doubled, retry.max_delay) * jitter)
