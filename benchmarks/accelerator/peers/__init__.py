"""Speed beside other toolkits on one accelerator."""
