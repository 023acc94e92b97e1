"""What happened to a stack since an instant, for those who take over from others."""
