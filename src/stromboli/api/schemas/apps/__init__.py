"""What is wrong with objects of the group `apps` beyond their fields one by one."""
