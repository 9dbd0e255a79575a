"""Runs operators in Blender itself and writes down what Main holds before and after: the oracle.

Reads a JSON list of requests on standard input and writes the list of answers to the file that it is given. Each request
begins from factory settings with an empty scene.
"""

import json
import sys
import tempfile
from pathlib import Path

import bpy

BOX_FACES = ((0, 1, 3, 2), (2, 3, 7, 6), (6, 7, 5, 4), (4, 5, 1, 0), (2, 6, 4, 0), (7, 3, 1, 5))
TRANSFORM = ("location", "rotation_euler", "scale", "delta_location", "delta_rotation_euler", "delta_scale")


def main() -> None:
    answers = [answer(request) for request in json.load(sys.stdin)]
    Path(sys.argv[1]).write_text(json.dumps(answers), encoding="utf-8")


def answer(request: dict) -> dict:
    before, outcome, after = performed(request)
    found = {"before": before, "outcome": outcome, "after": after}
    match request["kind"]:
        case "undo_redo":
            found["undo"] = moved("undo")
            found["redo"] = moved("redo")
        case "save_reopen":
            found["reopened"] = reopened()
        case "determinism":
            found["again"] = performed(request)[2]
    return found


def performed(request: dict) -> tuple[dict, str, dict]:
    """The state before, what became of the operator, and the state after."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    build(request["scene"])
    bpy.ops.ed.undo_push(message="the scene")
    before = snapshot()
    outcome = run(request["unit"], request["properties"])
    return before, outcome, snapshot()


def run(unit: str, properties: dict) -> str:
    module, _, name = unit.partition(".")
    operator = getattr(getattr(bpy.ops, module), name)
    try:
        (word,) = operator(True, **{key: native(operator, key, value) for key, value in properties.items()})
    # What Blender raises for a context, and for a property, that it refuses.
    except (RuntimeError, TypeError) as error:
        return f"REFUSED: {error}"
    return word


def native(operator: object, name: str, value: object) -> object:
    kind = operator.get_rna_type().properties[name]
    return set(value) if kind.type == "ENUM" and kind.is_enum_flag else value


def build(scene: dict) -> None:
    cursor = bpy.context.scene.cursor
    cursor.location = scene["cursor"]["location"]
    cursor.rotation_euler = scene["cursor"]["rotation_euler"]
    for wanted in scene["objects"]:
        item = bpy.data.objects.new(wanted["name"], box(wanted["name"], wanted["box"]))
        bpy.context.scene.collection.objects.link(item)
        for key in TRANSFORM:
            if key in wanted:
                setattr(item, key, wanted[key])
        item.select_set(wanted.get("selected", True))
        if wanted["name"] == scene["active"]:
            bpy.context.view_layer.objects.active = item
    bpy.context.view_layer.update()
    if scene["mode"] != "OBJECT":
        bpy.ops.object.mode_set(mode=scene["mode"])


def box(name: str, size: list[float]) -> object:
    """A box with one skewed corner, so that no two of its sides are alike."""
    x, y, z = size
    corners = [(i * x, j * y, k * z) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    corners[-1] = (1.25 * x, 1.5 * y, 1.75 * z)
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(corners, [], BOX_FACES)
    return mesh


def snapshot() -> dict:
    """What the operators of the inventory can read or write in Main."""
    context = bpy.context
    cursor, active = context.scene.cursor, context.view_layer.objects.active
    return {
        "active": active.name if active else None,
        "cursor": {"location": list(cursor.location), "rotation_euler": list(cursor.rotation_euler)},
        "mode": "EDIT" if context.mode.startswith("EDIT") else context.mode,
        "objects": [object_state(one) for one in context.scene.collection.objects],
        "meshes": [mesh_state(one) for one in sorted(bpy.data.meshes, key=lambda one: one.name)],
    }


def object_state(item: object) -> dict:
    transform = {key: list(getattr(item, key)) for key in TRANSFORM}
    return {"name": item.name, "data": item.data.name, **transform, "selected": item.select_get()}


def mesh_state(mesh: object) -> dict:
    return {
        "name": mesh.name,
        "vertices": [list(one.co) for one in mesh.vertices],
        "faces": [list(one.vertices) for one in mesh.polygons],
        "flat": not any(one.use_smooth for one in mesh.polygons),
        "uv_layers": [
            {"name": one.name, "uvs": [list(corner.uv) for corner in one.data]} for one in mesh.uv_layers
        ],
    }


def moved(step: str) -> dict:
    """Undo or redo, and look."""
    getattr(bpy.ops.ed, step)()
    return snapshot()


def reopened() -> dict:
    """Save a .blend file, open it again, and look."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "main.blend")
        bpy.ops.wm.save_as_mainfile(filepath=path)
        bpy.ops.wm.read_factory_settings(use_empty=True)
        bpy.ops.wm.open_mainfile(filepath=path)
        return snapshot()


if __name__ == "__main__":
    main()
