"""What is kept of more calls than memory holds: sums, quantiles and chosen calls, each in one pass and bounded in size.

All of them are mergeable: what is kept of two parts, merged, is what one pass over both would keep, whatever the order and however the
rows were dealt to the parts. So parts can be read by any workers, in any order.
"""
