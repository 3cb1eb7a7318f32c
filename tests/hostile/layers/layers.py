"""What can be taken out: the rows of ../README.md whose oracle is Barchan without the layer that refuses."""
import os

from layers_files import LAYERS as FILES
from layers_network import LAYERS as NETWORK
from layers_places import LAYERS as PLACES
from layers_processes import LAYERS as PROCESSES
from layers_profiles import LAYERS as PROFILES
from layers_resources import LAYERS as RESOURCES

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3))

LAYERS = PLACES + PROCESSES + RESOURCES + NETWORK + FILES + PROFILES


def fault_of(layer):
    """What is wrong with the description, or None: the code has moved on, most likely."""
    for name, was, _ in layer.edits:
        path = os.path.join(TOP, name)
        if not os.path.isfile(path):
            return f"{layer.row}: no file {name}"
        with open(path, encoding="utf-8") as file:
            count = file.read().count(was)
        if count != 1:
            return f"{layer.row}: {name} has {count} times: {was}"
    return None
