"""Endpoints and EndpointSlices of Services: which pods are behind them."""
