"""stand-in"""
def resolve(model):
    return model
async def close_models():
    pass
