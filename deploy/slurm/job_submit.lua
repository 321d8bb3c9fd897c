-- Holds every job of the partitions that Poolwise places, from the moment of its submission: Slurm cannot start it first.
-- The administrator's comment tells these holds from those that users ask for, which Poolwise leaves alone.
-- Belongs beside slurm.conf, which says JobSubmitPlugins=lua.
local placed = { pools = true } -- the partitions' names

function slurm_job_submit(job, partitions, uid)
  if placed[job.partition] and job.priority ~= 0 then
    job.priority = 0
    job.admin_comment = "poolwise-waits"
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
