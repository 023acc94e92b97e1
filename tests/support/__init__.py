"""What tests run against beside this process: plugins that start it and fail where it cannot."""
