"""Network links at work: what `netbridge/network/` decides, carried out.

`links.py` has the ends of a broker's links, `looking.py` what is consumed here, `supplying.py`
moves what others fetch.
"""
